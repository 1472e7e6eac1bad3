// Drives the exporter as Vehicle Physics Pro would, with values that its standard input says:
//
//   open HOST PORT EVERY       the vehicle is enabled
//   more                       send the rest of the data bus too
//   close                      the vehicle is disabled
//   reposition                 the vehicle was put somewhere else
//   set CHANNEL ID INTEGER     a value of the data bus
//   body 13 NUMBERS            attitude x y z w, center of mass, velocity, angular velocity: world axes
//   acceleration X Y Z         the vehicle's localAcceleration
//   step TIME DT               one physics step at that time
//   measure STEPS              so many steps; says how much they allocated
//
// Answers each line with "ok", or what it was asked for, on its standard output.

using System;
using System.Globalization;
using UnityEngine;
using VehiclePhysics;

public static class Harness
{
    static float Single(string text) { return (float)double.Parse(text, CultureInfo.InvariantCulture); }

    static Vector3 Vector(string[] words, int at)
    {
        return new Vector3(Single(words[at]), Single(words[at + 1]), Single(words[at + 2]));
    }

    static void SetTime(double time)
    {
#if UNITY_2020_2_OR_NEWER
        Time.fixedTimeAsDouble = time;
#else
        Time.fixedTime = (float)time;
#endif
    }

    static string Do(MotioncueExporter exporter, string[] words)
    {
        Rigidbody body = exporter.vehicle.cachedRigidbody;
        switch (words[0])
        {
        case "open":
            exporter.host = words[1];
            exporter.port = int.Parse(words[2]);
            exporter.every = int.Parse(words[3]);
            exporter.enabled = true;
            exporter.OnEnableVehicle();
            return exporter.enabled ? "ok" : "disabled";
        case "more":
            exporter.more = true;
            return "ok";
        case "close":
            exporter.OnDisableVehicle();
            return "ok";
        case "reposition":
            exporter.OnReposition();
            return "ok";
        case "set":
            exporter.vehicle.data.Get(int.Parse(words[1]))[int.Parse(words[2])] = int.Parse(words[3]);
            return "ok";
        case "body":
            body.rotation = new Quaternion(Single(words[1]), Single(words[2]), Single(words[3]), Single(words[4]));
            body.worldCenterOfMass = Vector(words, 5);
#if UNITY_6000_0_OR_NEWER
            body.linearVelocity = Vector(words, 8);
#else
            body.velocity = Vector(words, 8);
#endif
            body.angularVelocity = Vector(words, 11);
            return "ok";
        case "acceleration":
            exporter.vehicle.localAcceleration = Vector(words, 1);
            return "ok";
        case "step":
            SetTime(double.Parse(words[1], CultureInfo.InvariantCulture));
            Time.fixedDeltaTime = Single(words[2]);
            exporter.FixedUpdateVehicle();
            return "ok";
        case "measure":
            int steps = int.Parse(words[1]);
            int collections = GC.CollectionCount(0);
            for (int step = 0; step < steps; step++) exporter.FixedUpdateVehicle();
            return (GC.CollectionCount(0) - collections).ToString();
        }
        throw new ArgumentException(words[0]);
    }

    public static void Main()
    {
        MotioncueExporter exporter = new MotioncueExporter();
        string line;
        while ((line = Console.In.ReadLine()) != null)
        {
            Console.Out.WriteLine(Do(exporter, line.Split(' ')));
            Console.Out.Flush();
        }
    }
}
